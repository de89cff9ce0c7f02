# Helpers for runtime targets and tests.

find_package(absl REQUIRED)
find_package(FlatBuffers REQUIRED CONFIG)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)

set(BOWLINE_COMMON_RUNTIME_HEADERS
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_join.h>
  <absl/strings/string_view.h> <absl/types/span.h>
  <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <set> <string> <utility> <vector>)
bowline_precompile_headers(bowline_runtime_headers VERSION ${absl_VERSION}
  HEADERS ${BOWLINE_COMMON_RUNTIME_HEADERS} LINKS absl::status absl::statusor absl::strings absl::span)

# For sources that read plans: the header that flatc writes for the schema takes longer to compile than most sources. (CLI11
# is not among them: it has objects at namespace scope, which every source would construct.)
set(BOWLINE_PLAN_SCHEMA ${CMAKE_SOURCE_DIR}/runtime/plan/plan.fbs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${BOWLINE_PLAN_SCHEMA})
# Of the schema without comments and empty lines, so that plans outlive an edit of a comment.
file(READ ${BOWLINE_PLAN_SCHEMA} BOWLINE_PLAN_SCHEMA_TEXT)
string(REGEX REPLACE " *//[^\n]*" "" BOWLINE_PLAN_SCHEMA_TEXT "${BOWLINE_PLAN_SCHEMA_TEXT}")
string(REGEX REPLACE "\n+" "\n" BOWLINE_PLAN_SCHEMA_TEXT "${BOWLINE_PLAN_SCHEMA_TEXT}")
string(SHA256 BOWLINE_PLAN_SCHEMA_SHA256 "${BOWLINE_PLAN_SCHEMA_TEXT}")
bowline_precompile_headers(bowline_plan_headers
  VERSION "${absl_VERSION} ${nlohmann_json_VERSION} ${FlatBuffers_VERSION} ${BOWLINE_PLAN_SCHEMA_SHA256}"
  HEADERS ${BOWLINE_COMMON_RUNTIME_HEADERS} <nlohmann/json.hpp> <runtime/plan/plan_generated.h>
  LINKS absl::status absl::statusor absl::strings absl::span nlohmann_json::nlohmann_json)
if(TARGET bowline_plan_headers)
  add_dependencies(bowline_plan_headers bowline_plan_schema)
endif()

# bowline_add_runtime_library(name SOURCES a.cc ... LINKS lib ... [HEADERS headers]): never sees MLIR or LLVM. HEADERS are
# the precompiled ones, bowline_runtime_headers if none are named.
function(bowline_add_runtime_library name)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS bowline_runtime_headers)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
  bowline_use_precompiled_headers(${name} ${ARG_HEADERS})
  # A switch over types, commands or geometries names all: a new enumerator does not compile before every switch handles it.
  target_compile_options(${name} PRIVATE -Werror=switch)
  # Kernels see no bytes of a file, and spend their time in loops.
  if(BOWLINE_BUILD_FUZZERS AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/kernels")
    target_compile_options(${name} PRIVATE ${BOWLINE_FUZZER_COVERAGE})
  endif()
  # Those of kernels are compiled for several instruction sets.
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${CMAKE_SOURCE_DIR}/kernels")
    bowline_unite_sources(${name})
  endif()
endfunction()

# bowline_add_driver_plugin(name SOURCES ... LINKS ...): libbowline_NAME.so, the target bowline_driver_NAME, which programs
# and tests find beside themselves.
function(bowline_add_driver_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  set(target bowline_driver_${name})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS})
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  bowline_use_precompiled_headers(${target} bowline_runtime_headers)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME bowline_${name}
    CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  if(BOWLINE_BUILD_TESTS)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/test/bin)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${target}>
              ${CMAKE_BINARY_DIR}/test/bin/$<TARGET_FILE_NAME:${target}>
      VERBATIM)
  endif()
endfunction()

# bowline_add_tool(name SOURCES ... LINKS ...): an executable in build/<preset>/bin.
function(bowline_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  bowline_inline_less(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  # Libraries of the compiler have names such as BowlineEmit, those of the runtime such as bowline_plan.
  if(ARG_LINKS MATCHES "Bowline")
    bowline_use_precompiled_headers(${name} bowline_compiler_headers)
  else()
    bowline_use_precompiled_headers(${name} bowline_plan_headers)
  endif()
endfunction()

# bowline_record_test_cases(name): the ctest entry `name` runs a GoogleTest binary, and records its cases under its own
# name, since several entries may run one binary at the same time.
function(bowline_record_test_cases name)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
    "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/gtest/${name}.xml")
endfunction()

# bowline_in_shards(result count command...): the command line that runs a GoogleTest binary in so many processes at once,
# for tests whose cases mostly wait.
function(bowline_in_shards result count)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(${result} ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/test/Support/run-shards.py ${count} ${ARGN} PARENT_SCOPE)
endfunction()

# bowline_add_unit_test(name SOURCES ... LINKS ... [SHARDS count]): a GoogleTest binary, one ctest entry per binary.
function(bowline_add_unit_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(ARG_LINKS MATCHES "Bowline")
    bowline_use_precompiled_headers(${name} bowline_compiler_test_headers)
  else()
    bowline_use_precompiled_headers(${name} bowline_runtime_test_headers)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test/bin)
  set(command ${name})
  if(ARG_SHARDS)
    bowline_in_shards(command ${ARG_SHARDS} $<TARGET_FILE:${name}>)
  endif()
  add_test(NAME ${name} COMMAND ${command})
  bowline_record_test_cases(${name})
  bowline_label_test(${name})
  set_property(GLOBAL APPEND PROPERTY BOWLINE_TEST_TARGETS ${name})
endfunction()
