"""Changes to the file system: one gate that every act passes, its queues, limits and guards, the journal, and undo."""
