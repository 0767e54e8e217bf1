# Debian's LibTorch links these libraries but uses no symbol of them (torch_unused_test checks that). They pull in 220
# others, such as Qt and GDAL, which take half of the link time at a rank's start. A program avoids that if its DT_RPATH
# leads to a folder of empty libraries of these names. Without the folder it finds the real libraries and starts more
# slowly.
TORCH_UNUSED = [
    "libavcodec.so.59",
    "libavformat.so.59",
    "libavutil.so.57",
    "libopencv_calib3d.so.406",
    "libopencv_core.so.406",
    "libopencv_dnn.so.406",
    "libopencv_features2d.so.406",
    "libopencv_flann.so.406",
    "libopencv_highgui.so.406",
    "libopencv_imgcodecs.so.406",
    "libopencv_imgproc.so.406",
    "libopencv_optflow.so.406",
    "libopencv_video.so.406",
    "libopencv_videoio.so.406",
    "libopencv_ximgproc.so.406",
    "libswresample.so.4",
    "libswscale.so.6",
    "libzmq.so.5",
]
