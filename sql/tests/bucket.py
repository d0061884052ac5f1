"""A bucket over a directory: as much of the API of S3 as an archive needs, on plain HTTP."""

import http.server, os, pathlib, threading, urllib.parse

KEY = "the-key"


class Bucket:
    """Called `bucket`; the environment of this process names it from now on."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.served = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        os.environ.update(AWS_ENDPOINT=f"http://127.0.0.1:{self.server.server_port}", AWS_ALLOW_HTTP="true",
                          AWS_REGION="eu-1", AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY="secret")

    def stop(self):
        self.server.shutdown()

    def listing(self, query):
        """All files whose names begin so, on one page."""
        prefix = query.get("prefix", [""])[0]
        names = (str(file.relative_to(self.folder)) for file in sorted(self.folder.rglob("*")) if file.is_file())
        entry = "<Contents><Key>{}</Key><Size>{}</Size><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>e</ETag></Contents>"
        listed = (entry.format(name, (self.folder / name).stat().st_size) for name in names if name.startswith(prefix))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(listed)}</ListBucketResult>".encode()

    def handler(bucket):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in {"ETag": '"e"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def file(self):
                """The file that is meant; none, and an answer, if it is not one of the bucket."""
                path = urllib.parse.urlsplit(self.path).path
                path = path if path != "/bucket" else "/bucket/"
                signed = self.headers.get("Authorization", "").startswith(f"AWS4-HMAC-SHA256 Credential={KEY}/")
                if not signed or not path.startswith("/bucket/"):
                    return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
                return bucket.folder / urllib.parse.unquote(path.removeprefix("/bucket/"))

            def do_GET(self):
                file = self.file()
                if file is None:
                    return
                if file == bucket.folder:
                    return self.answer(200, bucket.listing(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)))
                if not file.is_file():
                    return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                body = file.read_bytes()
                bucket.served += 1
                wanted = self.headers.get("Range", "").removeprefix("bytes=")
                if not wanted:
                    return self.answer(200, body)
                first, _, last = wanted.partition("-")
                first, last = (int(first), int(last or len(body) - 1)) if first else (len(body) - int(last), len(body) - 1)
                part = body[first : last + 1]
                self.answer(206, part, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(body)}")

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                file = self.file()
                if file is None:
                    return
                file.parent.mkdir(parents=True, exist_ok=True)
                try:
                    with open(file, "xb" if self.headers.get("If-None-Match") == "*" else "wb") as opened:
                        opened.write(body)
                except FileExistsError:
                    return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                self.answer(200)

            def do_DELETE(self):
                file = self.file()
                if file is not None:
                    file.unlink(missing_ok=True)
                    self.answer(204)

        return Handler
