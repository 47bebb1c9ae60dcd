/* Video files, for code above the engine: reading them frame by frame, and writing files that play
 * everywhere.
 *
 *   params = ms_encoder_params_default (); params.width = 192; params.height = 128; params.fps = 8;
 *   ms_encoder_open (&encoder, "ball.mp4", &params, &error);
 *   for each frame: ms_encoder_write (encoder, rgb, &error);
 *   ms_encoder_finish (encoder, &error);   // verified and renamed
 *   ms_encoder_close (&encoder); */
#pragma once
#include "../media/encoder.h"
#include "../media/video.h"
