"""Appends what it is sent to a page."""

from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        with open("/pages/items.txt", "ab") as page:
            page.write(text + b"\n")
        self.send_response(200)
        self.end_headers()


HTTPServer(("", 7000), Handler).serve_forever()
