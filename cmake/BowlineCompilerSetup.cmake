# Flags and tools that every target shares.

find_program(BOWLINE_CCACHE ccache)
if(BOWLINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are known to ccache by the text of their `.sum` files (BowlinePrecompiledHeaders.cmake), which is
  # the same in all build folders, as the bytes of the headers are not.
  set(BOWLINE_CCACHE_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${BOWLINE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${BOWLINE_CCACHE_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BOWLINE_CCACHE_LAUNCHER})
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(BOWLINE_LLD NAMES ld.lld-22 ld.lld)
  if(BOWLINE_LLD)
    add_link_options(-fuse-ld=${BOWLINE_LLD})
  endif()
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Werror=return-type -fno-strict-aliasing)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Line tables are enough for backtraces and keep the MLIR objects small.
  add_compile_options(-O1 -g1)
endif()
add_link_options(-Wl,--gc-sections)

# bowline_inline_less(target): for sources that compile slowly and take no time at run time: classes that mlir-tblgen
# writes for operations, and command lines. The level of optimisation stays, for it is that of the precompiled headers.
function(bowline_inline_less target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-mllvm -inline-threshold=25")
  endif()
endfunction()

# Sources of a library that are compiled as one read its headers once, and compile the templates that they share once.
# Debug builds compile each source alone: an edit waits for one, and a source names every header that it uses.
option(BOWLINE_UNITE_SOURCES "Compile up to four sources of a library as one" OFF)
# bowline_unite_sources(target)
function(bowline_unite_sources target)
  if(BOWLINE_UNITE_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
endfunction()

if(BOWLINE_SANITIZE)
  add_compile_options(-fsanitize=${BOWLINE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BOWLINE_SANITIZE})
endif()
# Coverage that guides libFuzzer. Only the libraries under its tests are compiled with it (bowline_add_runtime_library), so
# that other tests of the same build folder are not slowed down.
set(BOWLINE_FUZZER_COVERAGE -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)

include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
