"""The command line: the one user of typer, the process environment and the exit status.

One module a command; :mod:`composeplat.cli.app` is where exceptions become exit statuses.
Must not decide what a definition means: a command turns options into a request and shows what comes back.
Nothing heavy is imported before the command that needs it runs.
"""
