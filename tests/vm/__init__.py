"""The local cluster on emulated machines: a bare Debian with systemd and one with sysvinit, which lose their power.

``make vm`` runs these tests, which take an hour: without hardware virtualization a machine is 10 to 30 times slower.
"""
