#!/bin/bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# agent.sh [SSH-OPTION...] HOST COMMAND...: in the place of ssh, between two machines that nobody else
# can reach: HOST has a shell at a port.
while [[ $1 == -* ]]; do shift; done
host=$1; shift
exec 3<>/dev/tcp/"$host"/2222
printf 'cd /tmp; export PATH=%q; { %s; } </dev/null 2>&1\nexit\n' "$PATH" "$*" >&3
exec cat <&3
