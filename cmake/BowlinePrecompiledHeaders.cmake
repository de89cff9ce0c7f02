# Headers of other projects, compiled once per build instead of once per source: MLIR's alone take most of the time of
# compiling a typical source of the compiler. No header of Bowline is among them but the one that flatc writes, so that an
# edit rebuilds the sources that include the edited file and nothing else. A source names every header that it uses all the
# same: a build with -DBOWLINE_PRECOMPILED_HEADERS=OFF shows missing includes.
option(BOWLINE_PRECOMPILED_HEADERS "Compile the headers of MLIR, Abseil and GoogleTest once per build (clang only)" ON)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(BOWLINE_PRECOMPILED_HEADERS OFF)
endif()

# As CMake has it, but for the name of the header that was compiled, an absolute path: ccache would take the objects of
# each build folder for different ones.
set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)

# bowline_precompile_headers(name VERSION v HEADERS <a.h> ... [LINKS lib ...])
# Defines target `name`, whose headers other targets take with bowline_use_precompiled_headers. VERSION changes when the
# contents of the headers do.
function(bowline_precompile_headers name)
  cmake_parse_arguments(ARG "" "VERSION" "HEADERS;LINKS" ${ARGN})
  if(NOT BOWLINE_PRECOMPILED_HEADERS)
    return()
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Target ${name} consists of its precompiled headers.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  # Timestamps would make two builds differ; a cached header would name files of the build folder that it came from.
  target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  string(JOIN "\n" content "${ARG_VERSION}" ${CMAKE_CXX_COMPILER_VERSION} "${CMAKE_BUILD_TYPE}" "${BOWLINE_SANITIZE}"
         ${ARG_HEADERS})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch.sum CONTENT "${content}\n")
endfunction()

# bowline_use_precompiled_headers(target name): `target` is compiled with the headers of `name`.
function(bowline_use_precompiled_headers target name)
  if(BOWLINE_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${name})
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      # clang takes headers that were compiled with -fPIC for nothing else, and CMake compiles executables with -fPIE.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
endfunction()
