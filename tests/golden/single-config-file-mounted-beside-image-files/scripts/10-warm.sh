#!/bin/sh
echo warm
