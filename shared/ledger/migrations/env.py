"""Alembic's entry: migrates over the connection that `shared.ledger.migrate` hands in."""

from alembic import context

from shared.ledger.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,
    compare_type=False,
)
with context.begin_transaction():
    context.run_migrations()
