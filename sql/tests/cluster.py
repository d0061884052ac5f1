"""The same answers where a scheduler and two executors give them, over PostgreSQL, a bucket and certificates."""

import csv, os, pathlib, signal, socket, ssl, subprocess, tempfile, threading, time

from answers import answered
from bucket import Bucket
from process import Process
from support import SQL, Server, sql, token

csv.field_size_limit(1 << 20)
NAME = "hindsight-sql-cluster"
[PROGRAM] = SQL


def certificates(folder):
    """A CA, and a certificate of it for processes of the cluster and for the Flight SQL server."""
    openssl = lambda *args: subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
    openssl("req", *key, "-keyout", "one.key", "-out", "one.csr", "-subj", f"/CN={NAME}")
    (folder / "names").write_text(f"subjectAltName=DNS:{NAME},IP:127.0.0.1")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "2"]
    openssl("x509", "-req", "-in", "one.csr", "-out", "one.pem", *signed)
    return ["--cluster-ca", folder / "ca.pem", "--cluster-cert", folder / "one.pem", "--cluster-key", folder / "one.key"]


class Cluster:
    def __init__(self, flags, archive, executors, folder):
        os.environ["RUST_LOG"] = "info"
        self.scheduler = Process([PROGRAM, "scheduler", "--listen", "127.0.0.1:0", *flags], r"scheduling on (\S+)")
        self.url = "http://" + self.scheduler.address
        command = [PROGRAM, "executor", "--scheduler", self.url, "--archive-url", archive, "--listen", "127.0.0.1:0", "--threads", "2"]
        command += ["--work-dir", str(folder)]
        self.executors = [Process([*command, *flags], r"executing on (\S+)") for _ in range(executors)]
        del os.environ["RUST_LOG"]

    def worked(self):
        """How many parts of statements each executor was given."""
        return [sum("Received task" in line for line in executor.said) for executor in self.executors]

    def stop(self):
        for process in [*self.executors, self.scheduler]:
            process.stop()


def worked_for(executor):
    """The processor time of an executor, in seconds."""
    stat = pathlib.Path(f"/proc/{executor.process.pid}/stat").read_text()
    return sum(map(int, stat.rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def busy(cluster):
    return sum(map(worked_for, cluster.executors))


def an_answer_may_be_larger_than_a_message(server):
    """One batch of 70 MB of texts, of which parts are sent."""
    statement = "SELECT arrow_cast(repeat(name, 100000), 'Utf8View') FROM runs WHERE parent = 'ci'"
    sizes = sorted(len(row[0]) for row in server.sql(statement))
    names = sorted(100000 * int(row[0]) for row in server.sql("SELECT length(name) FROM runs WHERE parent = 'ci'"))
    assert sizes == names and sum(sizes) > 64 << 20, (sum(sizes), len(sizes))


def what_is_not_wanted_any_more_ends(server, cluster):
    """A statement that would take hours, whose time is over, and one that is interrupted."""
    endless = "SELECT count(*) FROM runs a, runs b, runs c, runs d, runs e, runs f WHERE a.name || b.name || c.name < f.name"
    said = server.sql(endless, "--deadline", "3s", code=1)
    assert "took longer than" in said, said
    command = [*SQL, "--server", server.url, "--token", token("root"), "--archive-url", server.archive, "-c", endless]
    before = busy(cluster)
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: busy(cluster) > before + 1, "executors work")
    running.send_signal(signal.SIGINT)
    assert "interrupted" in running.communicate()[1] and running.returncode == 1, running
    def rests():
        before = busy(cluster)
        time.sleep(1)
        return busy(cluster) - before < 0.5
    until(rests, "executors rest")


def until(holds, what):
    for _ in range(300):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited in vain until {what}")


def strangers_get_nothing(server, cluster, folder):
    """Neither the scheduler nor an executor talks to who has no certificate of the CA."""
    addresses = [cluster.scheduler.address, *(executor.address for executor in cluster.executors)]
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_alpn_protocols(["h2"])
    for address in addresses:
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            said = plain.recv(1 << 10)
            assert not said or said[0] == 0x15, said  # a TLS alert at most, no frame of HTTP/2
        try:
            with socket.create_connection((host, int(port)), timeout=10) as plain, context.wrap_socket(plain, server_hostname=NAME) as tls:
                tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
                said = tls.recv(1 << 10)
                assert not said, said
        except (ssl.SSLError, ConnectionError):
            pass
    program = [PROGRAM, "query", "--scheduler", cluster.url, "--server", server.url, "--token", token("root")]
    said = sql("SELECT count(*) FROM runs", code=5, program=program)
    assert "no scheduler answers at" in said, said


def an_executor_that_dies_ends_what_it_works_on(server, cluster):
    """One of two that work on a statement is killed: the statement fails, and later ones are right without it."""
    statement = "SELECT count(*) FROM runs a, runs b, runs c, runs d WHERE a.name || b.name < c.name || d.name AND length(a.name) = 5"
    wanted = server.sql(statement)
    before, said = [worked_for(executor) for executor in cluster.executors], []
    asking = threading.Thread(target=lambda: said.append(server.sql(statement, code=5)))
    asking.start()
    until(lambda: all(worked_for(executor) > since + 0.5 for executor, since in zip(cluster.executors, before)), "both work")
    dies = cluster.executors.pop(0)
    dies.process.kill()
    dies.process.wait()
    asking.join()
    assert said and "lost an executor while it worked on the statement; try again" in said[0], said
    assert server.sql(statement) == wanted


def a_cluster_that_is_gone_is_said(server, cluster):
    cluster.scheduler.stop()
    said = server.sql("SELECT count(*) FROM runs", code=5)
    assert "no scheduler answers at" in said and "hindsight-sql-cluster scheduler" in said, said
    assert server.sql("SELECT 1") == [("1",)], "nothing of it is asked of a cluster"


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        bucket = Bucket(folder / "archive")
        flags = list(map(str, certificates(folder)))
        server = Server(folder, os.environ["HINDSIGHT_TEST_POSTGRES"], "s3://bucket")
        cluster = Cluster(flags, "s3://bucket", 2, folder)
        try:
            SQL[:] = [PROGRAM, "query", "--scheduler", cluster.url, "--threads", "4", *flags]
            tls = ["--tls-cert", str(folder / "one.pem"), "--tls-key", str(folder / "one.key")]
            passed = answered(server, tls, folder / "ca.pem")
            worked = cluster.worked()
            assert all(count > 10 for count in worked), (worked, cluster.executors[0].said[-5:])
            assert bucket.served > 10, bucket.served
            for test, *args in [
                (strangers_get_nothing, server, cluster, folder),
                (an_answer_may_be_larger_than_a_message, server),
                (what_is_not_wanted_any_more_ends, server, cluster),
                (an_executor_that_dies_ends_what_it_works_on, server, cluster),
                (a_cluster_that_is_gone_is_said, server, cluster),
            ]:
                test(*args)
                passed += 1
                print("ok", test.__name__.replace("_", " "), flush=True)
        finally:
            cluster.stop()
            server.stop()
            bucket.stop()
        print(f"{passed} passed, 0 failed; parts of statements by executor: {worked}")


if __name__ == "__main__":
    main()
