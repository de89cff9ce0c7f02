#ifndef BOWLINE_RUNTIME_TOOLS_UNKNOWN_WORDS_H_
#define BOWLINE_RUNTIME_TOOLS_UNKNOWN_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace bowline {

// The one of `words`, which is not empty, that a user who wrote `word` probably meant: the first that begins with it,
// else the nearest by its edits.
const std::string& NearestWord(absl::string_view word, const std::vector<std::string>& words);

// "its name here is 'WORD'" of a flag that other systems call `word`, else "the nearest one is 'WORD'", of such words;
// `otherwise` where none is near.
std::string Suggest(absl::string_view word, const std::vector<std::string>& words, absl::string_view otherwise);

// Describes the first word of a parsed command line that is no flag and no command of `app`, or of the command
// that was chosen, and which one is nearest; empty where nothing is left over but values.
std::string DescribeUnknownWord(const CLI::App& app);

// The first flag of a parsed command line that `app`, which has no commands, does not take, as in "--batch" of
// "--batch=4". Empty where there is none.
std::string FindUnknownFlag(const CLI::App& app);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_UNKNOWN_WORDS_H_
