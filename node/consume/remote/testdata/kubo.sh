#!/bin/sh
# Writes kubo.json: a folder as kubo 0.43 adds it, with both versions of CIDs (ipfs on the path; curl, python3).
# For TestRealIPFS, add a folder in the same way, run ipfs daemon, and set IPFS_GATEWAY=http://127.0.0.1:8080 TALLY_IPFS=ipfs:CID.
set -e
at=$(dirname "$0")
export IPFS_PATH="$(mktemp -d)"
ipfs init --profile=test >/dev/null
mkdir -p "$IPFS_PATH/data/deep"
seq 100 400 | sed 's/$/,x/' >"$IPFS_PATH/data/deep/table.csv"
echo "# data" >"$IPFS_PATH/data/README.md"
python3 - "$IPFS_PATH/data" >"$at/kubo.json" <<'END'
import base64, json, subprocess, sys

def ipfs(*args):
    return subprocess.run(["ipfs", *args], check=True, capture_output=True).stdout

# Leaves of 10 bytes make a tree of two levels below the root, for a node holds 174 links at most.
folders = [ipfs("add", "-Q", "-r", "--chunker=size-10", *more, sys.argv[1]).decode().strip() for more in ([], ["--cid-version=1"])]
blocks = {c: base64.b64encode(ipfs("block", "get", c)).decode() for f in folders for c in [f, *ipfs("refs", "-r", "-u", f).decode().split()]}
text = open(sys.argv[1] + "/deep/table.csv").read()
json.dump({"Folders": folders, "Text": text, "Blocks": blocks}, sys.stdout, sort_keys=True, separators=(",", ":"))
END
rm -r "$IPFS_PATH"
