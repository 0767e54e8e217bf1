#ifndef HOOKE_WORKER_BENCH_DOCUMENT_H_
#define HOOKE_WORKER_BENCH_DOCUMENT_H_

// The output of hooke-bench: JSON for `hooke bench` and other programs. Pure.

#include <string>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/tuning.h"
#include "worker/bench/measure.h"

namespace hooke {

// {"topology": {"ranks": 2, ...}, "cells": 130, "cells_planned": 130, "rules": 2, "tuning": "<text of a tuning file>",
//  "measurements": [{"operation": "all-reduce", "values": "private", "bytes": 4, "algorithm": "ring",
//                    "chunk_bytes": 65536, "drivers": 0, "default": false, "median_us": 1.5, "calls": 192}, ...]}
// with a line end. "default" tells whether Hooke makes this choice without a tuning. With several nodes there is also:
//  "between_nodes": [{"carrier": "sockets", "bytes": 4, "median_us": 11.5}, ...]
std::string TuningDocument(const Topology& topology, const Measured& measured, const Tuning& tuning);

// {"topology": {...}, "choices": [{"operation": "all-reduce", "values": "arena", "bytes_from": 4, "bytes_to": 4096,
//                                  "algorithm": "staged", "chunk_bytes": 65536, "reason": "..."}, ...]}
// with a line end. The last range of an operation has no "bytes_to". A two-level choice also has "drivers": 2, and the
// choice between the nodes as "between": {"algorithm": "ring", "chunk_bytes": 262144, "reason": "..."}. Ranges that
// hold only for sums of 16-bit values (ListChoices) also have "of": "16-bit sums".
std::string ExplanationDocument(const Topology& topology, const Tuning& tuning);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_DOCUMENT_H_
