// A library that is no plugin.

extern "C" __attribute__((visibility("default"))) int bowline_something_else() { return 0; }
