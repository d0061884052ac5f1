"""A server with users, runs in it, and programs that ask it."""

import base64, csv, hashlib, io, json, os, pathlib, subprocess, urllib.request

from process import Process

HINDSIGHT = os.environ["SERVER_BIN"]
# The program; on a cluster that of `cluster.py`, with the address of the scheduler.
SQL = [os.environ["SQL_BIN"]]
TOKENS = {"root": "*", "reader": "ci"}
RETENTION = "run_at = '30 3 * * * UTC'\n[default]\nkeep_for = 'forever'\narchive_after = '30d'\n"
API = "/apis/results.tekton.dev/v1alpha2/parents/"


def token(name):
    return f"hst_{name}_" + "0123456789abcdef" * 3


class Server(Process):
    """On a SQLite file and a directory, unless there is another database and another URL of the archive."""

    def __init__(self, folder, db=None, archive=None):
        self.folder = pathlib.Path(folder)
        self.db = db or f"sqlite:{folder}/history.db"
        (self.folder / "archive").mkdir(exist_ok=True)
        self.archive = archive or f"file://{folder}/archive"
        (self.folder / "retention.toml").write_text(RETENTION)
        users = ""
        for name, parent in TOKENS.items():
            digest = hashlib.sha256(token(name).encode()).hexdigest()
            users += f"[[users]]\nname = '{name}'\nsha256 = ['{digest}']\n"
            role = "admin" if parent == "*" else "readonly"
            users += f"grants = [{{ parents = ['{parent}'], role = '{role}' }}]\n"
        (self.folder / "users.toml").write_text(users)
        command = [HINDSIGHT, "serve", "--db", self.db, "--listen", "127.0.0.1:0", "--metrics-listen", "off"]
        command += ["--log-format", "json", "--archive-url", self.archive]
        command += ["--auth", "tokens", "--auth-tokens-file", f"{folder}/users.toml"]
        super().__init__(command, r'"message":"serving".*"address":"([^"]*)"')
        self.url = "http://" + self.address

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("authorization", "Bearer " + token("root"))
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def give(self, parent, result, records):
        self.call("POST", f"{API}{parent}/results", {"name": f"{parent}/results/{result}", "annotations": {"repo": "shop"}})
        for name, payload in records.items():
            self.put(parent, result, name, payload, "POST")

    def put(self, parent, result, name, payload, method="PATCH"):
        value = base64.b64encode(json.dumps(payload).encode()).decode()
        kind = payload["kind"]
        data = {"type": f"tekton.dev/v1.{kind}" if kind.endswith("Run") else "note", "value": value}
        body = {"name": f"{parent}/results/{result}/records/{name}", "data": data}
        path = f"{API}{parent}/results/{result}/records"
        self.call(method, path if method == "POST" else f"{path}/{name}", body)

    def logs(self, sources):
        """Appends logs of containers, each a name, a pod, a container, a restart, lines and whether it is sealed."""
        said = []
        for name, pod, container, restart, texts, sealed in sources:
            said.append({"log": name, "pod": pod, "container": container, "restart": restart})
            for at, text in enumerate(texts):
                said.append({"line": at, "time": f"2020-01-01T00:00:{at:02}Z", "text": text})
            whole = "".join(texts).encode()
            end = {"lines": len(texts), "bytes": len(whole), "sealed": sealed}
            said.append({**end, "sha256": hashlib.sha256(whole).hexdigest()} if sealed else end)
        lines = "".join(json.dumps(line) + "\n" for line in said)
        command = [HINDSIGHT, "import", "logs", "-", "--server", self.url, "--token", token("root")]
        done = subprocess.run(command, input=lines, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def delete(self, parent, result):
        self.call("DELETE", f"{API}{parent}/results/{result}")

    def retention(self):
        command = [HINDSIGHT, "retention", "run", "--yes", "--db", self.db, "--archive-url", self.archive]
        command += ["--retention-file", str(self.folder / "retention.toml")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def files(self):
        return sorted((self.folder / "archive").rglob("*.parquet"))

    def stats(self, *more):
        command = [HINDSIGHT, "stats", "--server", self.url, "--token", token("root"), "-o", "csv", *more]
        return rows(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def sql(self, statement, *more, who="root", archive=True, code=0):
        command = ["--server", self.url, "--token", token(who)] if who else ["--server", self.url]
        command += ["--archive-url", self.archive] if archive else []
        return sql(statement, *command, *more, code=code)


def rows(text):
    return [tuple(row) for row in list(csv.reader(io.StringIO(text)))[1:]]


def sql(statement, *more, code=0, program=SQL):
    """The rows of a statement, or what is said where it fails."""
    done = subprocess.run([*program, "-o", "csv", "-c", statement, *more], capture_output=True, text=True)
    assert done.returncode == code, (statement, done.returncode, done.stderr)
    return rows(done.stdout) if code == 0 else done.stderr


def run(number, kind="TaskRun", ended="2020-01-01T00", namespace="ci"):
    """A run that ended in 2020, unless it is of another hour."""
    failed = number % 3 == 0
    status = {"startTime": f"{ended}:00:00Z", "completionTime": f"{ended}:{1 + number * 7 % 50:02}:{number % 60:02}Z",
              "podName": f"pod-{number}",
              "conditions": [{"type": "Succeeded", "status": "False" if failed else "True",
                              "reason": "Failed" if failed else "Succeeded", "message": f"number {number}"}]}
    labels = {"team": "blue" if number % 2 else "red", "tekton.dev/pipeline": f"nightly-{number % 4}"}
    return {"kind": kind, "metadata": {"name": f"run-{number}", "namespace": namespace, "uid": f"uid-{number}", "labels": labels},
            "spec": {"params": [{"name": "revision", "value": f"r{number % 5}"}]}, "status": status}
