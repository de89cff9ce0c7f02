# Finds MLIR 22 and defines the helpers for dialects and passes. Everything links the MLIR and LLVM
# dylibs; mixing them with the static archives registers every option twice.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

separate_arguments(BOWLINE_LLVM_DEFINITIONS UNIX_COMMAND "${LLVM_DEFINITIONS}")

# bowline_tablegen(TARGET name SOURCE file.td OUTPUTS "file" "-gen-..." ...)
# Runs mlir-tblgen once per OUTPUT pair and defines target `name` for add_dependencies.
function(bowline_tablegen)
  cmake_parse_arguments(ARG "" "TARGET;SOURCE" "OUTPUTS" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS ${ARG_SOURCE})
  set(pairs ${ARG_OUTPUTS})
  while(pairs)
    list(POP_FRONT pairs output flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_custom_target(${ARG_TARGET} DEPENDS ${TABLEGEN_OUTPUT})
  set_property(GLOBAL APPEND PROPERTY BOWLINE_TABLEGEN_TARGETS ${ARG_TARGET})
endfunction()

# bowline_add_compiler_library(name SOURCES a.cpp ... LINKS lib ...)
# A library that may use MLIR. Generated headers of all dialects and passes exist before it compiles.
function(bowline_add_compiler_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${BOWLINE_LLVM_DEFINITIONS})
  get_property(generated GLOBAL PROPERTY BOWLINE_TABLEGEN_TARGETS)
  if(generated)
    add_dependencies(${name} ${generated})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} MLIR LLVM)
endfunction()

# bowline_add_dialect_docs(name SOURCE file.td DIALECT dialect): target `bowline-docs` generates the reference page
# docs/reference/<name>.md in the build folder.
add_custom_target(bowline-docs)
function(bowline_add_dialect_docs name)
  cmake_parse_arguments(ARG "" "SOURCE;DIALECT" "" ${ARGN})
  set(page ${CMAKE_BINARY_DIR}/docs/reference/${name}.md)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  file(GLOB definitions CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.td)
  list(TRANSFORM MLIR_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE includes)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/docs/reference
    COMMAND ${MLIR_TABLEGEN_EXE} -gen-dialect-doc -dialect=${ARG_DIALECT} -I${CMAKE_SOURCE_DIR} ${includes}
            ${source} -o ${page}
    DEPENDS ${definitions}
    COMMENT "Generating ${name}.md" VERBATIM)
  add_custom_target(bowline-docs-${name} DEPENDS ${page})
  add_dependencies(bowline-docs bowline-docs-${name})
endfunction()
