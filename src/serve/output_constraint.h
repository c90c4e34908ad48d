// What holds an answer to the format or the tools that its request asks for.
#pragma once

#include <memory>

#include "sample/constraint.h"
#include "serve/generation.h"

namespace strata::serve {

// Null where the answer is free. Calls that nobody requires are free to come, but fit their tools.
// `starts_thinking`: the prompt ends inside a thinking block, and
// the format holds behind it. `warnings` gets what could not be done.
Answer<std::shared_ptr<const Constraint>> constraint_of(const ServedModel& model,
                                                        const Generation& generation,
                                                        bool starts_thinking,
                                                        std::vector<std::string>& warnings);

}  // namespace strata::serve
