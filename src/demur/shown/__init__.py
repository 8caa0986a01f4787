"""How results come out of Python: as small tables in a notebook, and as DataFrames."""
