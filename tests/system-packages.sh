#!/bin/sh
# What the tests need outside Python, each as COMMAND or COMMAND:PACKAGE. strace kills and fails system
# calls (test_durability), gcc and node run the readers in C and JavaScript (test_conformance), iverilog
# reads memory files for FPGA benches (formats/test_firmware), tmux is a terminal to draw in, zsh and
# fish complete words (test_cli), chromium is a browser for the page (viewer/), npm brings Azure's emulator
# (remote/test_clouds).
set -e
missing=""
for pair in "$@"; do
  command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
[ -z "$missing" ] && exit 0
echo "installing$missing"
sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo
$sudo apt-get update -qq
$sudo apt-get install -y -qq $missing >/dev/null
