"""Several nodes work on one file system: movers and readers on NATS JetStream. Needs the extra ``cluster``."""
