// Keeps ThreadSanitizer from reporting gRPC's own threads as leaked. gRPC may end its threads late, its timer's thread
// even after main. Hooke starts its threads by other functions, so leaks of those are still reported.

// The sanitizer looks for a function of this name.
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "thread:grpc_core::Thread::Thread\n";
}
