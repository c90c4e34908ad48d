// The descriptors that the process has, and how many it may have.
#pragma once

#include <cstddef>

namespace strata::apps {

// Opens /dev/null for each of standard input, output and error that is closed, so that nothing
// opened later takes its place. To read or write there fails as it does where it is closed. To be
// called before anything is opened.
void occupy_standard_descriptors();

// False where it was closed.
bool can_read_standard_input();

// Raises the limit of open descriptors as far as the process may, and returns it.
std::size_t raise_descriptor_limit();

}  // namespace strata::apps
