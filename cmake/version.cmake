# Writes OUTPUT, the source that defines what apps/version.h declares; leaves it alone where it says
# so already. Run at every build: cmake -DOUTPUT=... -DVERSION=... -P version.cmake
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
execute_process(COMMAND git -C ${root} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit MATCHES "^[0-9a-z-]+$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "version.h"

namespace strata::apps {

std::string_view program_version() { return "@VERSION@"; }
std::string_view program_commit() { return "@commit@"; }

}  // namespace strata::apps
]])
