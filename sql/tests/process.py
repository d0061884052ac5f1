"""Programs that serve until they are stopped."""

import os, re, subprocess, threading


class Process:
    """A program that says where it listens on standard error."""

    def __init__(self, command, address):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HINDSIGHT_")}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(address, line)
            if found:
                self.address = found.group(1)
                break
        else:
            raise AssertionError(f"{command[0]} ended: {''.join(self.said)}")
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()

    def stop(self):
        self.process.terminate()
        self.process.wait()
