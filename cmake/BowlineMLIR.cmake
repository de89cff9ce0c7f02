# Finds MLIR 22 and defines the helpers for dialects and passes. Everything links the MLIR and LLVM
# dylibs; mixing them with the static archives registers every option twice.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

separate_arguments(BOWLINE_LLVM_DEFINITIONS UNIX_COMMAND "${LLVM_DEFINITIONS}")

# Include folders and definitions for compiling against MLIR without linking it.
add_library(bowline_mlir_headers INTERFACE)
target_include_directories(bowline_mlir_headers SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(bowline_mlir_headers INTERFACE ${BOWLINE_LLVM_DEFINITIONS})

# MLIR headers that many sources include directly or through their own includes. LLVMDialect.h is left out: only the code
# generator needs it, and parsing it takes longer than parsing all others.
set(BOWLINE_COMMON_MLIR_HEADERS
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/DialectImplementation.h> <mlir/IR/IRMapping.h>
  <mlir/IR/ImplicitLocOpBuilder.h> <mlir/IR/Matchers.h> <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h>
  <mlir/IR/Remarks.h> <mlir/IR/SymbolTable.h> <mlir/IR/Verifier.h> <mlir/Interfaces/FunctionInterfaces.h>
  <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Parser/Parser.h>
  <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h> <llvm/ADT/MapVector.h> <llvm/ADT/SetVector.h>
  <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/FormatVariadic.h>
  <llvm/Support/MathExtras.h> <nlohmann/json.hpp> <algorithm> <functional> <limits> <map> <numeric> <optional> <string>
  <vector>)
bowline_precompile_headers(bowline_compiler_headers VERSION "${LLVM_PACKAGE_VERSION} ${nlohmann_json_VERSION}"
  HEADERS ${BOWLINE_COMMON_MLIR_HEADERS} LINKS bowline_mlir_headers nlohmann_json::nlohmann_json)

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
  get_property(generated GLOBAL PROPERTY BOWLINE_TABLEGEN_TARGETS)
  if(generated)
    add_dependencies(${name} ${generated})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} bowline_mlir_headers MLIR LLVM)
  bowline_use_precompiled_headers(${name} bowline_compiler_headers)
  bowline_unite_sources(${name})
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
