#!/bin/sh
# run_mpi_test.sh RANKS PROGRAM MPIRUN...: runs PROGRAM under mpirun; the exit code is not 0 if that of any rank is not.
# It execs mpirun, so that a signal from Bazel reaches mpirun itself.
ranks=$1
program=$2
shift 2
exec "$@" -n "$ranks" "$program"
