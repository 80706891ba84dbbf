"""Text in, playable URL out: python examples/text_to_url.py http://127.0.0.1:8080."""

import sys
import time

import httpx

TEXT = """Dr. Lidenbrock paid $3.50 for the old manuscript. "Is it genuine?" asked Axel.

It was. On 24 June 1863 they left for Iceland."""

with httpx.Client(base_url=sys.argv[1], timeout=30) as farm:
    reply = farm.post("/v1/jobs", json={"text": TEXT, "format": "mp3", "tier": "rush"})
    reply.raise_for_status()
    job = reply.json()

    while job["state"] in {"accepted", "planning", "rendering", "assembling"}:
        time.sleep(0.2)
        job = farm.get(job["links"]["self"]).json()
        print(f"{job['state']}: {job['progress']['fraction']:.0%}", file=sys.stderr)
    if job["state"] != "completed":
        sys.exit(f"the job ended as {job['state']}: {job['error']}")

    for file in farm.get(job["links"]["deliverables"]).json()["files"]:
        if file["kind"] == "audio":
            print(file["duration_s"], "seconds:", file["url"])
