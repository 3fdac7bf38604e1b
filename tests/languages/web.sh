#!/usr/bin/env bash
# The npm package as strangers use it: web.sh FOLDER [PYTHON], where FOLDER has what js/build made, `package` and its tarball beside it.
# The program of docs/languages.md, then every case of the corpus and one list of errors (languages.py).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$(cd "$1" && pwd)
python=${2:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cp "$root/tests/corpus/add.pte" .
sed -n '/^```js$/,/^```$/p' "$root/docs/languages.md" | sed '1d;$d' >add.mjs
npm install --silent --offline --no-fund --no-audit "$folder"/etude-*.tgz
got=$(node add.mjs)
[ "$got" = "3 3 3 3 3 3" ] || { echo "FAILED Node, docs/languages.md: $got"; exit 1; }
echo "Node, docs/languages.md: 1 passed, 0 failed"
"$python" "$here/languages.py" Node "$root/tests/corpus" node "$here/run_case.mjs" "$work/node_modules/etude"
