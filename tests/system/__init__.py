"""Files, processes, proxies and deadlines."""
