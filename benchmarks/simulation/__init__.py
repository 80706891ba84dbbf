"""A farm in simulated time: the real policies, simulated devices, arrivals and queues."""
