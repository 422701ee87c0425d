"""Work along dimension 0, cut into slabs: planned, run here or on an executor that is handed in.

A slab is a range of items of a file. It travels as a recipe of under a kilobyte, it may be run
twice (a worker was lost, a slow one was doubled), and whoever runs it needs nothing but idxfile
and the files. This room knows no engine: one is handed down as an executor, which is the standard
library's word for it.
"""
