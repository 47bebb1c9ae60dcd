/* Every page in every language, light and dark, as pictures; the tabs read as their language says. */
#include "studio.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *language, *pages[4];
} languages[] = {
    {"en", {"Create", "Train", "Library", "Models"}},
    {"es", {"Crear", "Entrenar", "Biblioteca", "Modelos"}},
    {"ja", {"作成", "学習", "ライブラリー", "モデル"}},
    {"hi", {"बनाएँ", "प्रशिक्षण", "संग्रह", "मॉडल"}},
};
static const char *const names[4] = {"create", "train", "library", "models"};

int main(int argc, char **argv) {
  struct scene scene;
  scene_begin(&scene, argc, argv);
  for (size_t i = 0; i < G_N_ELEMENTS(languages); i++) {
    /* Dark and light in turn, so that every page is seen in both. */
    for (int dark = 0; dark < (i == 0 ? 2 : 1); dark++) {
      if (scene_start(&scene, languages[i].language, dark, NULL))
        continue;
      for (int page = 0; page < 4; page++) {
        char name[60];
        check_ok(robot_press(&scene.robot, "page tab", languages[i].pages[page], 5) == 0,
                 "%s: the page \"%s\"", languages[i].language, languages[i].pages[page]);
        snprintf(name, sizeof name, "%s-%s-%s", names[page], languages[i].language, dark ? "dark" : "light");
        scene_picture(&scene, name);
      }
      robot_kill(&scene.robot);
    }
  }
  return scene_end(&scene);
}
