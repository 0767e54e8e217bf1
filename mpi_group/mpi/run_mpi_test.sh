#!/bin/sh
# run_mpi_test.sh RANKS PROGRAM MPIRUN...: becomes mpirun, so that a signal from Bazel reaches it; its exit code is not 0 if any rank's is not.
ranks=$1
program=$2
shift 2
exec "$@" -n "$ranks" "$program"
