#!/bin/sh
# What the tests need outside Python: strace kills and fails system calls (tests/test_durability.py),
# gcc and node run the readers in C and JavaScript (tests/test_conformance.py), iverilog reads the
# memory files for FPGA benches (tests/formats/test_firmware.py).
set -e
missing=""
for pair in strace:strace gcc:gcc make:make node:nodejs iverilog:iverilog; do
  command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
[ -z "$missing" ] && exit 0
echo "installing$missing"
sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -qq
$sudo apt-get install -y -qq $missing >/dev/null
