"""Statistics that people type: in each file some functions, and the methods of
frames, groups and tables for them.
"""
