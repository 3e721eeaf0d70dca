"""Drive Pulumi: preview, deploy, destroy and refresh of one environment's stack.

Owns the Pulumi command line: its home, its state, its processes, what it says.
Must not know typer or a terminal: it tells a listener what happens, and gives an outcome.

Pulumi's state is kept safe by two rules:

- every object carries labels that say whose it is, so what an interrupted run made is found again and taken up;
- one operation runs at a time, under a lock that the kernel lets go of when its holder ends.
"""
