# Helpers for runtime targets and tests.

find_package(absl REQUIRED)
find_package(Threads REQUIRED)

# bowline_add_runtime_library(name SOURCES a.cc ... LINKS lib ...): never sees MLIR or LLVM.
function(bowline_add_runtime_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
endfunction()

# bowline_add_tool(name SOURCES ... LINKS ...): an executable in build/<preset>/bin.
function(bowline_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
endfunction()

# bowline_add_unit_test(name SOURCES ... LINKS ...): a GoogleTest binary, one ctest entry per binary.
function(bowline_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/bin)
  add_test(NAME ${name} COMMAND ${name})
  set_property(GLOBAL APPEND PROPERTY BOWLINE_TEST_TARGETS ${name})
endfunction()
