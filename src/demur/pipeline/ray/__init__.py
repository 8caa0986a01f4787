"""The pipeline on a Ray cluster: problems in blocks, pools out as shards, one shard per block."""
