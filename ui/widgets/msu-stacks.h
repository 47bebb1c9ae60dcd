/* Pages of a stack that are not seen are told so to assistive technologies; GTK before 4.10 leaves them
 * looking as if they were there, and a screen reader reads all pages at once. */
#pragma once

/* Once, when the application starts: holds for every GtkStack and AdwViewStack from then on. */
void msu_stacks_tell_hidden_pages(void);
