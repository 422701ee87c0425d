#!/bin/sh
# The tests' needs outside Python: strace, which kills and fails system calls in tests/test_durability.py.
set -e
missing=""
for program in strace; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
echo "installing$missing"
sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -qq && $sudo apt-get install -y -qq $missing >/dev/null
