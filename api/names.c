/* names.c - the one rule for names that come from outside. */
#include <kvb/ops.h>

bool kvb_name_valid(const char *s, size_t n)
{
	if (n == 0 || n > KVB_MAX_NAME || s[0] == '.' || s[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}
