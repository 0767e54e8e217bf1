// What ThreadSanitizer is not to report of gRPC: it ends its own threads when it likes, that of its timer also after
// main, and then they look leaked. Threads that Hooke starts are started by other functions, and are reported.

// The sanitizer's own name for it.
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "thread:grpc_core::Thread::Thread\n";
}
