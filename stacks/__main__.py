"""A Compose file as a Pulumi program: the stack's configuration says which file, the stack's name which namespace."""

from pathlib import Path

from composeplat.components.program import declare_configured

declare_configured(Path(__file__).parent)
