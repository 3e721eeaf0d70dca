"""The local cluster: real Kubernetes with real pods on this machine, if you have no other cluster.

Owns its parts, their certificates and addresses, and starting, watching and stopping them.
Must not know Compose or Pulumi.

Everything runs in namespaces of its own (network, mounts, processes), below one supervisor.
When that process ends, however it ends, the kernel ends all the others and takes back their mounts, devices and
firewall rules: there is nothing to clean up but cgroups and a folder of sockets.
Only `frontdoor` runs outside: it listens on loopback and carries connections in through sockets in that folder.
"""
