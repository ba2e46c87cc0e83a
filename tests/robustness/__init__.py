"""What bittrue does with hostile files, failing disks, signals, and many threads and processes at once."""
