"""Copies of a ledger's file that are put back over it."""


def put_over(copy, path):
    """Write a copy over the file, which keeps its identity, as `cp`
    and most programs of backups do.
    """
    content = copy.read_bytes()
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate(len(content))
