"""What the operating system gives: files, locks, processes, deadlines, proxies.

Owns the care that these need, once for all rooms. Must not know what any of it is for.
"""
