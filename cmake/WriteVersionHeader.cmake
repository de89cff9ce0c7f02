# cmake -DSOURCE=tree -DOUTPUT=header -DVERSION=x.y.z -DLLVM=version-or-nothing -DTARGETS=names -P WriteVersionHeader.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failure)
if(failure)
  set(commit "unknown: it was not built from a checkout")
endif()
if(NOT LLVM)
  set(LLVM "none: this is the runtime alone")
endif()
set(content "// Written by each build.
#define BOWLINE_VERSION \"${VERSION}\"
#define BOWLINE_COMMIT \"${commit}\"
#define BOWLINE_LLVM \"${LLVM}\"
#define BOWLINE_TARGETS \"${TARGETS}\"
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${content}")
  file(WRITE ${OUTPUT} "${content}")
endif()
