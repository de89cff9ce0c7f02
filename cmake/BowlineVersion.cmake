# bowline_add_version_header(target): `target` may include "bowline_version.h", which names version and commit. The commit is
# that of the source tree at each build, so the file is looked at each time and written when it changed.
set(BOWLINE_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/WriteVersionHeader.cmake)

function(bowline_add_version_header target)
  if(BOWLINE_BUILD_COMPILER)
    set(llvm ${LLVM_PACKAGE_VERSION})
  endif()
  get_property(targets GLOBAL PROPERTY BOWLINE_TARGETS)
  list(JOIN targets ", " targets)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/version)
  add_custom_target(${target}-version
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${folder}/bowline_version.h -DVERSION=${PROJECT_VERSION}
            -DLLVM=${llvm} -DTARGETS=${targets} -P ${BOWLINE_VERSION_SCRIPT}
    BYPRODUCTS ${folder}/bowline_version.h
    COMMENT "" VERBATIM)
  target_include_directories(${target} PRIVATE ${folder})
  add_dependencies(${target} ${target}-version)
endfunction()
