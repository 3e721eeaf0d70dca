"""Drive Pulumi: preview, deploy, destroy and refresh the stack of one environment.

Owns Pulumi's command line: its data folder, its state, its processes and their events.
Must not know typer or a terminal: it calls handlers with events, and returns an outcome, so that programs can use it.

Two rules keep Pulumi's state safe:

- every object has labels that name its environment, so that the next run finds the objects of an interrupted one;
- one operation runs at a time, under a lock that the kernel releases when its holder ends.
"""
